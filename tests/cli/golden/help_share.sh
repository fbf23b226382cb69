"$GPUMEM" help share
