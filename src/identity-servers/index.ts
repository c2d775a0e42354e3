/** Identity servers: who knows whose an address is, and invites people who have no account yet. */
export { readAddress, type ThirdPartyAddress } from './address.ts';
export { IdentityServers } from './identity-servers.ts';
export { type InviteKey, readInviteKeys, type StoredInvite } from './stored-invite.ts';
