/** Versions, capabilities and well-known files of this server. */
export type { CapabilityOptions, ServedFeatures } from './capabilities.ts';
export { type AuthMetadata, type CapabilityRoutesDeps, capabilityRoutes } from './routes.ts';
export type { FeatureOptions } from './versions.ts';
export { clientWellKnown, type WellKnownOptions } from './well-known.ts';
