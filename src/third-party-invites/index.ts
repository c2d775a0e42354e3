/** Third-party invites: invites by mail address or phone number. */
export { OnBind } from './on-bind.ts';
export { type Exchange, Redemption } from './redemption.ts';
export { onBindRoute } from './routes.ts';
export { type CheckAddressInvite, ThirdPartyInvites } from './third-party-invites.ts';
