import type { DirectoryTables } from '../../directory/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { ProfileTables } from '../../profiles/index.ts';

export interface ImagesInUseDeps {
  readonly database: Database;
  readonly serverName: string;
  /** Resolves when the table of listed rooms, `room_stats`, is up to date. */
  readonly caughtUp: () => Promise<void>;
}

/** Finds the uploads that are avatars of local users or of rooms. */
export class ImagesInUse {
  readonly #database: Database;
  readonly #serverName: string;
  readonly #caughtUp: () => Promise<void>;

  constructor({ database, serverName, caughtUp }: ImagesInUseDeps) {
    this.#database = database;
    this.#serverName = serverName;
    this.#caughtUp = caughtUp;
  }

  /** Returns which of the uploads are avatars of local users or of rooms, by media id. */
  async among(mediaIds: readonly string[]): Promise<ReadonlySet<string>> {
    if (mediaIds.length === 0) return new Set();
    await this.#caughtUp();
    const prefix = `mxc://${this.#serverName}/`;
    const uris = mediaIds.map((id) => prefix + id);
    const scanner = this.#database.scanner<ProfileTables & DirectoryTables>();
    const ofUsers = await scanner
      .selectFrom('profile_fields')
      .select('value')
      .where('field', '=', 'avatar_url')
      .where(
        'value',
        'in',
        uris.map((uri) => JSON.stringify(uri)),
      )
      .execute();
    const ofRooms = await scanner
      .selectFrom('room_stats')
      .select('avatar_url')
      .where('avatar_url', 'in', uris)
      .execute();
    const avatarUris = [
      ...ofUsers.map(({ value }) => JSON.parse(value) as string),
      ...ofRooms.map(({ avatar_url: uri }) => uri ?? ''),
    ];
    return new Set(avatarUris.map((uri) => uri.slice(prefix.length)));
  }
}
