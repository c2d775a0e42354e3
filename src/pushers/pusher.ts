import { isJsonObject, type JsonObject } from '../protocol/index.ts';
import type { PusherTables } from './tables.ts';

/** `http` sends to a push gateway, `email` sends mails. */
export type PusherKind = 'http' | 'email';

/** The fields of a pusher that clients set. Source: client-server API, `POST /pushers/set`. */
export interface PusherSettings {
  readonly kind: PusherKind;
  readonly appId: string;
  /** The address at the gateway. For a pusher that sends mails, it is the mail address. */
  readonly pushkey: string;
  readonly appDisplayName: string;
  readonly deviceDisplayName: string;
  readonly profileTag: string | undefined;
  readonly lang: string;
  readonly data: JsonObject;
  /** Disabled pushers send nothing. Source: MSC3881. */
  readonly enabled: boolean;
}

/** A pusher of a local user. */
export interface Pusher extends PusherSettings {
  readonly id: number;
  readonly userId: string;
  /** The device that set the pusher; `undefined` for pushers that the server has added. */
  readonly deviceId: string | undefined;
  /** When a client last set the pusher, in milliseconds since the epoch. */
  readonly setAt: number;
  /** Number of failed attempts since the last success, or since the pusher was set. */
  readonly failures: number;
  /** Time of the first failed attempt since the last success, in milliseconds since the epoch. */
  readonly failingSince: number | undefined;
  /** Time of the next attempt after a failure, in milliseconds since the epoch. */
  readonly retryAt: number | undefined;
  /** The unread count that the gateway last received. */
  readonly badge: number | undefined;
}

/** The `app_id` of pushers that send mails. Source: client-server API, `POST /pushers/set`. */
export const mailAppId = 'm.email';

/** Converts a row to a pusher. */
export function toPusher(row: PusherTables['pushers']): Pusher {
  const data: unknown = JSON.parse(row.data);
  return {
    id: row.id,
    userId: row.user_id,
    deviceId: row.device_id ?? undefined,
    kind: row.kind as PusherKind,
    appId: row.app_id,
    pushkey: row.pushkey,
    appDisplayName: row.app_display_name,
    deviceDisplayName: row.device_display_name,
    profileTag: row.profile_tag ?? undefined,
    lang: row.lang,
    data: isJsonObject(data) ? data : {},
    enabled: row.enabled === 1,
    setAt: row.set_at,
    failures: row.failures,
    failingSince: row.failing_since ?? undefined,
    retryAt: row.retry_at ?? undefined,
    badge: row.badge ?? undefined,
  };
}

/** Returns the fields of a pusher that have the same names in the client-server API and in the admin API. */
export function pusherFields(pusher: Pusher) {
  return {
    app_display_name: pusher.appDisplayName,
    app_id: pusher.appId,
    data: pusher.data,
    device_display_name: pusher.deviceDisplayName,
    kind: pusher.kind,
    lang: pusher.lang,
    profile_tag: pusher.profileTag ?? '',
    pushkey: pusher.pushkey,
  };
}

/** Renders a pusher as `GET /pushers` does. */
export function pusherForClient(pusher: Pusher): JsonObject {
  return {
    ...pusherFields(pusher),
    'org.matrix.msc3881.enabled': pusher.enabled,
    ...(pusher.deviceId !== undefined && { 'org.matrix.msc3881.device_id': pusher.deviceId }),
  };
}
