/**
 * How operators call this program, for hints: the archive of `npm run package` sets `HEARTH_COMMAND`, since it needs no
 * npm.
 */
export const ownCommand = process.env['HEARTH_COMMAND'] ?? 'npm run hearth --';
