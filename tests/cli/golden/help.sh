"$GPUMEM" help
