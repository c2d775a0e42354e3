/**
 * The command with which operators start this program, as hints show it. The archive that `npm run package` makes sets
 * `HEARTH_COMMAND`, because it runs without npm.
 */
export const ownCommand = process.env['HEARTH_COMMAND'] ?? 'npm run hearth --';
