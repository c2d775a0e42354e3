import { type DatabaseCheck, rowsCheck } from '../kernel/database/index.ts';

/** Returns the condition that the user of a row does not exist. */
const withoutUser = (table: string) =>
  `not exists (select 1 from users u where u.user_id = ${table}.user_id)`;

/** Returns the condition that the device of a row does not exist. Rows without a device do not fulfil it. */
const withoutDevice = (table: string) =>
  `${table}.device_id is not null and not exists (select 1 from devices d
    where d.user_id = ${table}.user_id and d.device_id = ${table}.device_id)`;

/**
 * Returns the database checks of a table of tokens. They find tokens of missing accounts and of missing devices, and
 * delete these tokens to mend the table.
 * @param label what the reported problems call the tokens
 */
const tokenChecks = (table: string, label: string): DatabaseCheck[] => [
  rowsCheck({
    problem: `${label} of accounts that do not exist`,
    select: `select user_id as subject from ${table} where ${withoutUser(table)}`,
    mend: `delete from ${table} where ${withoutUser(table)}`,
  }),
  rowsCheck({
    problem: `${label} of devices that do not exist`,
    select: `select user_id as subject from ${table} where ${withoutDevice(table)}`,
    mend: `delete from ${table} where ${withoutDevice(table)}`,
  }),
];

/** Database checks of the references between the tables of accounts. */
export const accountChecks: readonly DatabaseCheck[] = [
  ...tokenChecks('access_tokens', 'access tokens'),
  ...tokenChecks('refresh_tokens', 'refresh tokens'),
];
