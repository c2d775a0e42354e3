import { type JsonObject, serverOfUser } from '../../protocol/index.ts';

/** Reads profiles of local users; supplied at composition. */
export interface MemberProfiles {
  /** Returns the fields of a local user's profile that membership events contain. */
  profile(userId: string): Promise<{ displayname?: string | undefined; avatar_url?: string | undefined }>;
  /**
   * Checks an avatar that a client chooses for one room. Absent: every avatar is allowed.
   * @throws MatrixError M_FORBIDDEN for an avatar that is not allowed (`max_avatar_size`, `allowed_avatar_mimetypes`)
   */
  checkAvatar?(url: string): Promise<void>;
}

/** Builds the content of membership events. */
export class MemberContents {
  readonly #profiles: MemberProfiles;
  readonly #serverName: string;
  readonly #allowPerRoomProfiles: boolean;

  constructor(deps: { profiles: MemberProfiles; serverName: string; allowPerRoomProfiles: boolean }) {
    this.#profiles = deps.profiles;
    this.#serverName = deps.serverName;
    this.#allowPerRoomProfiles = deps.allowPerRoomProfiles;
  }

  /**
   * Returns the profile fields of a membership event; empty for remote users, whose profiles are on their own servers.
   */
  async profile(userId: string): Promise<JsonObject> {
    if (serverOfUser(userId) !== this.#serverName) return {};
    const { displayname, avatar_url } = await this.#profiles.profile(userId);
    return {
      ...(displayname === undefined ? undefined : { displayname }),
      ...(avatar_url === undefined ? undefined : { avatar_url }),
    };
  }

  /**
   * Returns `requested` with the membership and the profile fields that it lacks. Where per-room profiles are not
   * allowed (`allow_per_room_profiles`), the profile of the user replaces all profile fields of `requested`.
   * @throws MatrixError as `permitted`
   */
  async withProfile(userId: string, requested: JsonObject, membership: string): Promise<JsonObject> {
    const permitted = await this.permitted(requested);
    return { ...(await this.profile(userId)), ...permitted, membership };
  }

  /**
   * Returns the content of a client's request without the fields that clients may not set.
   * @throws MatrixError M_FORBIDDEN for an avatar that is not allowed
   */
  async permitted(requested: JsonObject): Promise<JsonObject> {
    const { join_authorised_via_users_server: _authoriser, membership: _membership, ...content } = requested;
    const { displayname: _name, avatar_url: avatarUrl, ...rest } = content;
    if (!this.#allowPerRoomProfiles) return rest;
    if (typeof avatarUrl === 'string' && avatarUrl !== '') await this.#profiles.checkAvatar?.(avatarUrl);
    return content;
  }
}
