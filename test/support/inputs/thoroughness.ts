/**
 * Tests that look for rare mistakes by chance look longer where there is time for it: `.ci/run` sets
 * `HEARTH_TEST_THOROUGHLY=1`, `npm test` is done within minutes.
 */
export const isThorough = process.env['HEARTH_TEST_THOROUGHLY'] === '1';
