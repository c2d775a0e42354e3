/**
 * The types that modules of operators import as `hearth/module`. This file exports only types, so that a module needs
 * no code of Hearth when it runs. The pages docs/modules.md and docs/generated/modules.md describe the types.
 */
export type { AccountObserver, AccountRules, RegistrationRequest } from './account-rules.ts';
export type { Decision, Denial } from './decision.ts';
export type { EventAdditions } from './event-additions.ts';
export type { ChangedContent, EventRules } from './event-rules.ts';
export type {
  BackgroundUpdateRules,
  MediaRules,
  ModuleRateLimit,
  RateLimitRules,
  UpdateBatch,
  UploadLimit,
} from './limit-rules.ts';
export type { Module, ModuleApi, ModuleLog, WebResource } from './module.ts';
export type { LoginAttempt, PasswordProvider } from './password-provider.ts';
export type { PresenceChange, PresenceRouter } from './presence-router.ts';
export type { EventDraft, NewEvent, NewRoom, RoomAccess, RoomStateView, StateEvent } from './rooms.ts';
export type { HttpAnswer, HttpQuery, ModuleUser, OutboundAccess, UserAccess } from './server-access.ts';
export type {
  CheckedFile,
  FoundUser,
  NewLogin,
  NewRegistration,
  ReceivedInvite,
  SpamChecker,
} from './spam-checker.ts';
export type { ModuleStore, StoreAccess, StoreChange, StoreEntry, StoreMigration } from './storage.ts';
export type {
  MappedUser,
  OidcUser,
  OidcUserMapper,
  OidcUserMapping,
  SamlUser,
  SamlUserMapper,
  SamlUserMapping,
} from './user-mapping.ts';
export type { WebHandler, WebRequest, WebResponse, WebUser } from './web-resource.ts';
export type { JobAccess, JobOptions, MailAccess, ModuleJob, ModuleMail } from './work.ts';
