"$GPUMEM" help replay
