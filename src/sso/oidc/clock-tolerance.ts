/** Maximum difference between the clocks of a provider and of this server, in seconds. */
export const clockTolerance = 120;
