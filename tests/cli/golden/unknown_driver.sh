"$GPUMEM" info --driver other
