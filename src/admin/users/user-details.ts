import type { Consents, User } from '../../accounts/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Profiles } from '../../profiles/index.ts';
import { notifiedVersionOf } from '../../server-notices/index.ts';
import type { ExternalIds } from '../../sso/index.ts';
import type { AccountAddresses } from '../../third-party-ids/index.ts';
import type { UserList } from './user-list.ts';

/** The sources of the details of a user. */
export interface UserDetailsDeps {
  readonly database: Database;
  readonly profiles: Profiles;
  readonly list: UserList;
  /** Absent on a server without third-party identifiers. */
  readonly addresses: AccountAddresses | undefined;
  /** Absent on a server without single sign-on. */
  readonly externalIds: ExternalIds | undefined;
  readonly consents: Pick<Consents, 'agreementOf'>;
}

/**
 * Returns an account with its profile for a response. `creation_ts` is in seconds, all other times are in milliseconds.
 */
export async function userDetails(
  user: User,
  { database, profiles, list, addresses, externalIds, consents }: UserDetailsDeps,
) {
  const [profile, lastSeen, threepids, ids, agreement, notifiedVersion] = await Promise.all([
    profiles.read(user.userId),
    list.lastSeen(user.userId),
    addresses?.list(user.userId) ?? [],
    externalIds?.list(user.userId) ?? [],
    consents.agreementOf(user.userId),
    notifiedVersionOf(database, user.userId),
  ]);
  return {
    name: user.userId,
    displayname: profile['displayname'] ?? null,
    avatar_url: profile['avatar_url'] ?? null,
    threepids: threepids.map(({ medium, address, added_at, validated_at }) => ({
      medium,
      address,
      added_at,
      validated_at,
    })),
    external_ids: ids.map(({ provider, externalId }) => ({
      auth_provider: provider,
      external_id: externalId,
    })),
    is_guest: user.isGuest,
    admin: user.isAdmin,
    deactivated: user.isDeactivated,
    erased: user.isErased,
    shadow_banned: user.isShadowBanned,
    locked: user.isLocked,
    suspended: user.isSuspended,
    creation_ts: Math.floor(user.createdAt / 1000),
    last_seen_ts: lastSeen ?? null,
    appservice_id: user.appservice ?? null,
    user_type: user.userType ?? null,
    consent_server_notice_sent: notifiedVersion ?? null,
    consent_version: agreement?.version ?? null,
    consent_ts: agreement?.agreed_at ?? null,
  };
}
