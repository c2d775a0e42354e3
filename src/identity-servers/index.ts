/**
 * Requests to identity servers, which know the owners of third-party identifiers and invite people without an
 * account.
 */

export { type IdentityServerSession, IdentityServers, type PublishedAddress } from './identity-servers.ts';
export { type InviteKey, readInviteKeys, type StoredInvite } from './stored-invite.ts';
export { canonicalAddress, readAccessToken, readThirdPartyId, type ThirdPartyId } from './third-party-id.ts';
