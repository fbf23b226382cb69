"$GPUMEM" help doctor
