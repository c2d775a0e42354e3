/** Account data and room tags: what clients store on the server for their user. */
export { AccountData, type AccountDataDeps, type ComputedAccountData } from './account-data.ts';
export { IgnoredUsers } from './ignored-users.ts';
export { InvitePermissions } from './invite-permissions.ts';
export type { InviteDecision } from './invite-rules.ts';
export { accountDataMigrations } from './migrations.ts';
export { openAccountData } from './open.ts';
export type { AccountDataEntry, AccountDataKey } from './store.ts';
export { Tags } from './tags.ts';
