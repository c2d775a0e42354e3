/** Seconds by which the clocks of a provider and of this server may differ. */
export const clockTolerance = 120;
