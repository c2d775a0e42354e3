/** The registered application services: their tokens and namespaces, and how they authenticate. */
export { Appservice } from './appservice.ts';
export { ServiceLogin } from './authentication/service-login.ts';
export { type ServiceAccount, ServiceTokens } from './authentication/service-tokens.ts';
export { openAppserviceRegistry } from './open.ts';
export { reportChangedRegistrations } from './registrations/changed-registrations.ts';
export { readRegistrations } from './registrations/read-registrations.ts';
export type { Namespace, Registration } from './registrations/registration.ts';
export type { RegistrationProblem } from './registrations/registration-file.ts';
export { AppserviceRegistry } from './registry.ts';
