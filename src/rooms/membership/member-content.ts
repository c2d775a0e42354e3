import { type JsonObject, serverOfUser } from '../../protocol/index.ts';

/** Reads profiles of local users; supplied at composition. */
export interface MemberProfiles {
  /** Returns the fields of a local user's profile that membership events contain. */
  profile(userId: string): Promise<{ displayname?: string | undefined; avatar_url?: string | undefined }>;
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

  /** Returns the profile fields of a membership event; empty for remote users, whose profiles are on their own servers. */
  async profile(userId: string): Promise<JsonObject> {
    if (serverOfUser(userId) !== this.#serverName) return {};
    const { displayname, avatar_url } = await this.#profiles.profile(userId);
    return {
      ...(displayname === undefined ? undefined : { displayname }),
      ...(avatar_url === undefined ? undefined : { avatar_url }),
    };
  }

  /**
   * Content with the user's profile, unless `given` has one for this room and per-room profiles are allowed
   * (`allow_per_room_profiles`).
   */
  async withProfile(userId: string, given: JsonObject, membership: string): Promise<JsonObject> {
    return { ...(await this.profile(userId)), ...this.permitted(given), membership };
  }

  /** Returns the content that a client gave, without the fields that clients may not set. */
  permitted(given: JsonObject): JsonObject {
    const { join_authorised_via_users_server: _authoriser, membership: _membership, ...content } = given;
    if (this.#allowPerRoomProfiles) return content;
    const { displayname: _name, avatar_url: _avatar, ...rest } = content;
    return rest;
  }
}
