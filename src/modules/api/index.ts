/**
 * What modules of operators import as `hearth/module`: types only, so that a module needs nothing of Hearth when it runs.
 * The pages docs/modules.md and docs/generated/modules.md describe them.
 */
export type { Decision, Denial } from './decision.ts';
export type { EventRules } from './event-rules.ts';
export type { Module, ModuleApi, ModuleLog, WebResource } from './module.ts';
export type { LoginAttempt, PasswordProvider } from './password-provider.ts';
export type { EventDraft, NewEvent, RoomAccess, RoomStateView, StateEvent } from './rooms.ts';
export type { HttpAnswer, HttpQuery, ModuleUser, OutboundAccess, UserAccess } from './server-access.ts';
export type { NewLogin, NewRegistration, SpamChecker } from './spam-checker.ts';
export type { WebHandler, WebRequest, WebResponse, WebUser } from './web-resource.ts';
