import { invalidParam, isJsonObject, type JsonObject, missingParam } from '../protocol/index.ts';
import type { PlainHttpCheck } from './http/plain-http.ts';
import { mailAppId, type PusherKind, type PusherSettings } from './pusher.ts';

/** The body of `POST /pushers/set`. */
export interface PusherRequest {
  readonly kind: string | null;
  readonly app_id: string;
  readonly pushkey: string;
  readonly app_display_name?: string;
  readonly device_display_name?: string;
  readonly profile_tag?: string | null;
  readonly lang?: string;
  readonly data?: JsonObject;
  readonly append?: boolean;
  readonly 'org.matrix.msc3881.enabled'?: boolean;
}

/** Fields that a request needs unless it deletes a pusher. */
const requiredFields = ['app_display_name', 'device_display_name', 'lang', 'data'] as const;

/** The path that URLs of push gateways must have. Source: client-server API, `POST /pushers/set`. */
const gatewayPath = '/_matrix/push/v1/notify';

/**
 * Returns the settings of a pusher that a client sets.
 * @param allowsPlainHttp whether a gateway at this host may be reached without TLS
 * @throws MatrixError M_MISSING_PARAM for missing fields and, as in the reference server, for URLs whose path is not
 * `gatewayPath`; M_INVALID_PARAM for unknown kinds, for pushers of the kind `email` whose app_id is not `m.email`, and
 * for URLs that are invalid, or that use http where `allowsPlainHttp` forbids it
 */
export async function parseSettings(
  request: PusherRequest,
  allowsPlainHttp: PlainHttpCheck,
): Promise<PusherSettings> {
  const missing = requiredFields.filter((name) => request[name] === undefined);
  if (missing.length > 0) throw missingParam(`Missing parameters: ${missing.join(', ')}`);
  const { app_display_name = '', device_display_name = '', lang = '', data = {} } = request;
  const kind = kindOf(request.kind);
  if (kind === 'http') await checkGateway(data['url'], allowsPlainHttp);
  // With other app_ids a user could have several pushers for one address, and each would send every mail.
  if (kind === 'email' && request.app_id !== mailAppId)
    throw invalidParam(`Pushers of the kind 'email' have the app_id '${mailAppId}'`);
  return {
    kind,
    appId: request.app_id,
    pushkey: request.pushkey,
    appDisplayName: app_display_name,
    deviceDisplayName: device_display_name,
    profileTag: request.profile_tag ?? undefined,
    lang,
    data,
    enabled: request['org.matrix.msc3881.enabled'] ?? true,
  };
}

function kindOf(kind: string | null): PusherKind {
  if (kind === 'http' || kind === 'email') return kind;
  throw invalidParam(`There are no pushers of the kind '${kind}'`);
}

async function checkGateway(text: unknown, allowsPlainHttp: PlainHttpCheck): Promise<void> {
  if (typeof text !== 'string') throw missingParam("'data' needs the 'url' of the push gateway");
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const hasWebScheme = url?.protocol === 'https:' || url?.protocol === 'http:';
  if (!url || !hasWebScheme) throw invalidParam('The URL of the push gateway is not valid');
  if (url.pathname !== gatewayPath) throw missingParam(`The URL must have the path ${gatewayPath}`);
  if (url.protocol === 'http:' && !(await allowsPlainHttp(url.hostname.replace(/^\[|\]$/g, '')))) {
    throw invalidParam('The URL of the push gateway must begin with https://');
  }
}

/** Returns the URL of a pusher's gateway; `undefined` when there is no valid one. */
export function gatewayUrlOf({ data }: Pick<PusherSettings, 'data'>): URL | undefined {
  const text = isJsonObject(data) ? data['url'] : undefined;
  return typeof text === 'string' && URL.canParse(text) ? new URL(text) : undefined;
}
