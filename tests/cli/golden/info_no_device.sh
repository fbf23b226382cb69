"$GPUMEM" info --device 5
