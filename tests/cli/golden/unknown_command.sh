"$GPUMEM" frobnicate
