import { Type } from 'typebox';
import { type Requester, type Route, type RouteContract, route } from '../kernel/http/index.ts';
import { type JsonObject, notFound, unrecognized } from '../protocol/index.ts';
import { type CapabilityOptions, capabilitiesOf, type ServedFeatures } from './capabilities.ts';
import { type FeatureOptions, specVersions, unstableFeatures } from './versions.ts';
import { clientWellKnown, serverWellKnown, supportWellKnown, type WellKnownOptions } from './well-known.ts';

/** Returns the metadata of the authorization server. */
export type AuthMetadata = () => Promise<JsonObject>;

export interface CapabilityRoutesDeps {
  readonly served: ServedFeatures;
  /** Whether a session can confirm operations by interactive authentication; absent where all sessions can. */
  readonly canConfirm?: ((requester: Requester) => Promise<boolean>) | undefined;
  /** Absent on servers without an authorization server. */
  readonly authMetadata?: AuthMetadata | undefined;
  /**
   * Returns the part of `/.well-known/matrix/client` about the authorization server, for clients of an
   * earlier version of MSC2965.
   */
  readonly authentication?: (() => Promise<JsonObject>) | undefined;
}

/** Returns the routes that describe this server and its features to clients and to other servers. */
export function capabilityRoutes(
  deps: CapabilityRoutesDeps,
  options: CapabilityOptions & WellKnownOptions & FeatureOptions,
): Route[] {
  const { served, authMetadata, authentication } = deps;
  return [
    versionsRoute(options),
    route(
      {
        operationId: 'getCapabilities',
        method: 'GET',
        path: ['/_proto/client/v3/capabilities', '/_proto/client/r0/capabilities'],
        auth: 'guest',
        response: Type.Object({ capabilities: Type.Object({}) }),
      },
      async ({ requester }) => {
        const canConfirm = !requester.isGuest && (await deps.canConfirm?.(requester)) !== false;
        return { capabilities: capabilitiesOf(requester, options, served, canConfirm) };
      },
    ),
    authMetadataRoute(authMetadata),
    clientWellKnownRoute(clientWellKnown(options), authentication),
    fileRoute(
      { operationId: 'getWellknownSupport', path: '/.well-known/proto/support' },
      supportWellKnown(options),
    ),
    fileRoute({ operationId: 'getWellKnown', path: '/.well-known/proto/server' }, serverWellKnown(options)),
  ];
}

/**
 * Serves the supported versions of the specification. The response is the same for all clients and needs no
 * authentication, so that a client with an expired token receives the versions as well.
 */
function versionsRoute(options: FeatureOptions): Route {
  const body = { versions: specVersions, unstable_features: unstableFeatures(options) };
  return route(
    {
      operationId: 'getVersions',
      method: 'GET',
      path: '/_proto/client/versions',
      auth: 'none',
      response: Type.Object({
        versions: Type.Array(Type.String()),
        unstable_features: Type.Record(Type.String(), Type.Boolean()),
      }),
    },
    () => body,
  );
}

function authMetadataRoute(authMetadata: AuthMetadata | undefined): Route {
  return route(
    {
      operationId: 'getAuthMetadata',
      method: 'GET',
      path: ['/_proto/client/v1/auth_metadata', '/_proto/client/unstable/org.matrix.msc2965/auth_metadata'],
      auth: 'none',
    },
    () => {
      if (authMetadata === undefined) throw unrecognized('This server does not support login by OAuth 2.0');
      return authMetadata();
    },
  );
}

/** Serves `/.well-known/matrix/client`. The response also names the authorization server if that server answers. */
function clientWellKnownRoute(
  content: JsonObject | undefined,
  authentication: (() => Promise<JsonObject>) | undefined,
): Route {
  const contract = { operationId: 'getWellknown', path: '/.well-known/proto/client' } as const;
  if (content === undefined || authentication === undefined) return fileRoute(contract, content);
  return route({ ...contract, method: 'GET', auth: 'none' }, async () => {
    const found = await authentication().catch(() => undefined);
    return found === undefined ? content : { ...content, 'org.matrix.msc2965.authentication': found };
  });
}

function fileRoute(
  contract: Pick<RouteContract, 'operationId' | 'path'>,
  content: JsonObject | undefined,
): Route {
  return route({ ...contract, method: 'GET', auth: 'none' }, () => {
    if (content === undefined) throw notFound('This file is not configured');
    return content;
  });
}
