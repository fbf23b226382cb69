"$GPUMEM" driver --status perhaps
