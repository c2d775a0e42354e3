import { type AccountOptions, canChangePassword } from '../accounts/index.ts';
import type { Requester } from '../kernel/http/index.ts';
import { type JsonObject, roomVersions } from '../protocol/index.ts';

/** The options that decide what users may do. */
export interface CapabilityOptions extends Pick<AccountOptions, 'password_config'> {
  readonly default_room_version: string;
  readonly enable_set_displayname: boolean;
  readonly enable_set_avatar_url: boolean;
  readonly forget_rooms_on_leave: boolean;
  /** Milliseconds; null: events can not be delayed. */
  readonly max_event_delay_duration: number | null;
}

/** What is both allowed and there to be used. */
export interface ServedFeatures {
  /** Users can change the mail addresses and phone numbers of their account. */
  readonly thirdPartyIdChanges: boolean;
  /** Users can mint tokens that log in another client. */
  readonly loginTokens: boolean;
  /** Administrators can lock accounts over the client API. */
  readonly locking: boolean;
  /** Administrators can suspend accounts over the client API. */
  readonly suspension: boolean;
  /** How many events of one user may be delayed at the same time. */
  readonly delayedEvents: number;
}

/** What a user may do. Source: client-server API, "Capabilities negotiation". */
export function capabilitiesOf(
  requester: Requester,
  options: CapabilityOptions,
  served: ServedFeatures,
): JsonObject {
  const { isAdmin } = requester;
  const setName = isAdmin || options.enable_set_displayname;
  const setAvatar = isAdmin || options.enable_set_avatar_url;
  const disallowed = [...(setName ? [] : ['displayname']), ...(setAvatar ? [] : ['avatar_url'])];
  return {
    'm.change_password': { enabled: canChangePassword(options) },
    'm.room_versions': { default: options.default_room_version, available: availableRoomVersions() },
    'm.set_displayname': { enabled: setName },
    'm.set_avatar_url': { enabled: setAvatar },
    'm.profile_fields': { enabled: true, ...(disallowed.length > 0 && { disallowed }) },
    'm.3pid_changes': { enabled: served.thirdPartyIdChanges },
    'm.get_login_token': { enabled: served.loginTokens },
    'm.forget_forced_upon_leave': { enabled: options.forget_rooms_on_leave },
    'org.matrix.msc4155.invite_permission_config_enforced': { enabled: true },
    ...delaying(options, served),
    ...(isAdmin && moderation(served)),
  };
}

/** Where it is absent, events can not be delayed. Source: MSC4140. */
function delaying(
  { max_event_delay_duration: longest }: CapabilityOptions,
  { delayedEvents }: ServedFeatures,
): JsonObject {
  if (longest === null) return {};
  const limits = { max_delay_ms: longest, max_scheduled: delayedEvents };
  return { 'm.delayed_events': limits, 'org.matrix.msc4140.delayed_events': limits };
}

/** Absent where nothing of it can be done. */
const moderation = ({ locking, suspension }: ServedFeatures): JsonObject =>
  locking || suspension ? { 'm.account_moderation': { lock: locking, suspend: suspension } } : {};

const availableRoomVersions = (): JsonObject =>
  Object.fromEntries(
    [...roomVersions.values()].map(({ id, stable }) => [id, stable ? 'stable' : 'unstable']),
  );
