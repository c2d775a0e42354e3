/**
 * Whether tests run on both kinds of database and randomized tests run for long (`HEARTH_TEST_THOROUGHLY=1`). Otherwise
 * `npm test` takes a third of the time.
 */
export const isThorough = process.env['HEARTH_TEST_THOROUGHLY'] === '1';

/** Returns the number of runs of a randomized test: `thorough` when tests run thoroughly, a fifth of it otherwise. */
export const runs = (thorough: number): number => (isThorough ? thorough : Math.ceil(thorough / 5));
