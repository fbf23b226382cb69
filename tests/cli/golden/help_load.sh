"$GPUMEM" help load
