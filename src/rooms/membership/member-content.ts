import { type JsonObject, serverOfUser } from '../../protocol/index.ts';

/** Where display names and avatars come from; declared here, supplied at composition. */
export interface MemberProfiles {
  /** What of the profile of a local user goes into membership events. */
  profile(userId: string): Promise<{ displayname?: string | undefined; avatar_url?: string | undefined }>;
}

/** Makes the contents of membership events. */
export class MemberContents {
  readonly #profiles: MemberProfiles;
  readonly #serverName: string;
  readonly #allowPerRoomProfiles: boolean;

  constructor(parts: { profiles: MemberProfiles; serverName: string; allowPerRoomProfiles: boolean }) {
    this.#profiles = parts.profiles;
    this.#serverName = parts.serverName;
    this.#allowPerRoomProfiles = parts.allowPerRoomProfiles;
  }

  /** The part that says who somebody is; empty for users of other servers, whose profiles their servers keep. */
  async profile(userId: string): Promise<JsonObject> {
    if (serverOfUser(userId) !== this.#serverName) return {};
    const { displayname, avatar_url } = await this.#profiles.profile(userId);
    return {
      ...(displayname === undefined ? undefined : { displayname }),
      ...(avatar_url === undefined ? undefined : { avatar_url }),
    };
  }

  /**
   * A content with the user's profile in it, unless `given` has another for this room and rooms may have their own
   * (`allow_per_room_profiles`).
   */
  async withProfile(userId: string, given: JsonObject, membership: string): Promise<JsonObject> {
    return { ...(await this.profile(userId)), ...this.without(given), membership };
  }

  /** What a client gave, without what it may not say. */
  without(given: JsonObject): JsonObject {
    const { join_authorised_via_users_server: _authoriser, membership: _membership, ...content } = given;
    if (this.#allowPerRoomProfiles) return content;
    const { displayname: _name, avatar_url: _avatar, ...rest } = content;
    return rest;
  }
}
