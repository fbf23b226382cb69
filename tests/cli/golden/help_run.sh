"$GPUMEM" help run
