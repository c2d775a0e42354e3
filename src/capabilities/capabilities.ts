import { type AccountOptions, canChangePassword } from '../accounts/index.ts';
import type { Requester } from '../kernel/http/index.ts';
import { type JsonObject, roomVersions } from '../protocol/index.ts';

/** Options that decide what users may do. */
export interface CapabilityOptions extends Pick<AccountOptions, 'password_config'> {
  readonly default_room_version: string;
  readonly enable_set_displayname: boolean;
  readonly enable_set_avatar_url: boolean;
  readonly forget_rooms_on_leave: boolean;
  /** Maximum milliseconds for which an event can be delayed; null disables delayed events. */
  readonly max_event_delay_duration: number | null;
}

/** Features that are both implemented and enabled. */
export interface ServedFeatures {
  /** Whether users may change the email addresses and phone numbers of their accounts. */
  readonly thirdPartyIdChanges: boolean;
  /** Whether users may create tokens that log in another client. */
  readonly loginTokens: boolean;
  /** Whether a user who creates a login token must confirm it by interactive authentication. */
  readonly confirmsLoginTokens: boolean;
  /** Whether administrators may lock accounts through the client API. */
  readonly locking: boolean;
  /** Whether administrators may suspend accounts through the client API. */
  readonly suspension: boolean;
  /** Maximum number of scheduled delayed events of one user. */
  readonly maxDelayedEvents: number;
}

/**
 * Returns the capabilities of a user. Source: client-server API, "Capabilities negotiation".
 * @param canConfirm whether the session can confirm operations by interactive authentication
 */
export function capabilitiesOf(
  requester: Requester,
  options: CapabilityOptions,
  served: ServedFeatures,
  canConfirm: boolean,
): JsonObject {
  const { isAdmin } = requester;
  const setName = isAdmin || options.enable_set_displayname;
  const setAvatar = isAdmin || options.enable_set_avatar_url;
  const disallowed = [...(setName ? [] : ['displayname']), ...(setAvatar ? [] : ['avatar_url'])];
  return {
    'm.change_password': { enabled: canChangePassword(options) && canConfirm },
    'm.room_versions': { default: options.default_room_version, available: availableRoomVersions() },
    'm.set_displayname': { enabled: setName },
    'm.set_avatar_url': { enabled: setAvatar },
    'm.profile_fields': { enabled: true, ...(disallowed.length > 0 && { disallowed }) },
    'm.3pid_changes': { enabled: served.thirdPartyIdChanges && canConfirm },
    'm.get_login_token': { enabled: served.loginTokens && (canConfirm || !served.confirmsLoginTokens) },
    'm.forget_forced_upon_leave': { enabled: options.forget_rooms_on_leave },
    'org.matrix.msc4155.invite_permission_config_enforced': { enabled: true },
    ...delayedEventLimits(options, served),
    ...(isAdmin && moderation(served)),
  };
}

/** Returns the limits of delayed events; empty when they are disabled. Source: MSC4140. */
function delayedEventLimits(
  { max_event_delay_duration: maxDelay }: CapabilityOptions,
  { maxDelayedEvents }: ServedFeatures,
): JsonObject {
  if (maxDelay === null) return {};
  const limits = { max_delay_ms: maxDelay, max_scheduled: maxDelayedEvents };
  return { 'm.delayed_events': limits, 'org.matrix.msc4140.delayed_events': limits };
}

/** Returns the moderation capability; empty when administrators can neither lock nor suspend accounts. */
const moderation = ({ locking, suspension }: ServedFeatures): JsonObject =>
  locking || suspension ? { 'm.account_moderation': { lock: locking, suspend: suspension } } : {};

const availableRoomVersions = (): JsonObject =>
  Object.fromEntries(
    [...roomVersions.values()].map(({ id, stable }) => [id, stable ? 'stable' : 'unstable']),
  );
