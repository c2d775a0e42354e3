import type { JsonObject, RoomVersion } from '../../protocol/index.ts';

/** The presets of `POST /createRoom`. */
export type Preset = 'private_chat' | 'trusted_private_chat' | 'public_chat';

/** Settings of a preset. Source: client-server API, `POST /createRoom`, "preset". */
export interface PresetRules {
  readonly joinRule: 'invite' | 'public';
  readonly guestAccess: 'can_join' | 'forbidden';
  /** Whether invited users receive the power level of the creator, or become additional creators where these exist. */
  readonly inviteesAreTrusted: boolean;
  /** Power level that is required to invite. */
  readonly inviteLevel: number;
}

/** The settings of each preset. */
export const presetRules: Readonly<Record<Preset, PresetRules>> = {
  private_chat: { joinRule: 'invite', guestAccess: 'can_join', inviteesAreTrusted: false, inviteLevel: 0 },
  trusted_private_chat: {
    joinRule: 'invite',
    guestAccess: 'can_join',
    inviteesAreTrusted: true,
    inviteLevel: 0,
  },
  public_chat: { joinRule: 'public', guestAccess: 'forbidden', inviteesAreTrusted: false, inviteLevel: 50 },
};

/** Returns the default preset for a directory visibility. */
export function presetOfVisibility(visibility: 'public' | 'private'): Preset {
  return visibility === 'public' ? 'public_chat' : 'private_chat';
}

/**
 * Returns the power levels of a new room.
 * @param trusted users besides the creator who have the creator's level, in room versions without `additional_creators`
 * @param overrides applied in order, key by key; null values keep the previous value. Source: the option
 * `default_power_level_content_override`.
 */
export function initialPowerLevels(
  version: RoomVersion,
  rules: PresetRules,
  users: { creator: string; trusted: readonly string[] },
  overrides: readonly (JsonObject | undefined)[],
): JsonObject {
  const usersWithLevel100 = version.privilegedCreators ? [] : [users.creator, ...users.trusted];
  const levels: JsonObject = {
    users: Object.fromEntries(usersWithLevel100.map((userId) => [userId, 100])),
    users_default: 0,
    events: {
      'm.room.name': 50,
      'm.room.power_levels': 100,
      'm.room.history_visibility': 100,
      'm.room.canonical_alias': 50,
      'm.room.avatar': 50,
      'm.room.tombstone': version.privilegedCreators ? 150 : 100,
      'm.room.server_acl': 100,
      'm.room.encryption': 100,
    },
    events_default: 0,
    state_default: 50,
    ban: 50,
    kick: 50,
    redact: 50,
    invite: rules.inviteLevel,
    historical: 100,
  };
  return Object.assign(levels, ...overrides.map(withoutNulls));
}

function withoutNulls(override: JsonObject | undefined): JsonObject {
  return Object.fromEntries(Object.entries(override ?? {}).filter(([, value]) => value !== null));
}
