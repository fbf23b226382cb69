"$GPUMEM" help map
