/** Third-party invites: of people whose address is known, and not who they are here. */
export { OnBind } from './on-bind.ts';
export { type Exchange, Redemption } from './redemption.ts';
export { onBindRoute } from './routes.ts';
export { ThirdPartyInvites } from './third-party-invites.ts';
