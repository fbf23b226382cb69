"$GPUMEM" help driver
