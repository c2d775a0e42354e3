import { hash } from 'node:crypto';
import type { Logger } from '../../kernel/observability/index.ts';
import type { OutboundHttp } from '../../kernel/outbound/index.ts';
import type { Profiles } from '../../profiles/index.ts';
import type { RemoteUser } from '../browser-logins/identity-provider.ts';

/** Stores avatars; provided by the media repository. */
export interface PictureStore {
  /**
   * Returns the SHA-256 of a local file, in hexadecimal; `undefined` for a file that is not stored on this
   * server.
   */
  describe(mxcUri: string): Promise<{ readonly sha256: string } | undefined>;
  /** Stores a file of a user. @returns its `mxc://` URI */
  store(userId: string, file: { readonly contentType: string; readonly bytes: Uint8Array }): Promise<string>;
}

export interface ProviderProfilesDeps {
  readonly profiles: Pick<Profiles, 'read' | 'setForUser'>;
  readonly guardedHttp: Pick<OutboundHttp, 'fetch'>;
  /** Absent when `enable_media_repo` is off. */
  readonly pictures: PictureStore | undefined;
  readonly log: Logger;
  /** The option `max_avatar_size`, bytes. */
  readonly maxPicture: number | null;
}

/** Milliseconds until a picture must have arrived. */
const timeout = 10_000;

/** Maximum bytes of a picture when `max_avatar_size` is null. */
const defaultMaxPicture = 10 * 1024 * 1024;

/** Media types of avatars. SVG is not among them, since it may contain scripts. */
const pictureTypes = /^image\/(png|jpeg|gif|webp|avif)$/;

/** Copies names and pictures of a provider into profiles. */
export class ProviderProfiles {
  readonly #deps: ProviderProfilesDeps;

  constructor(deps: ProviderProfilesDeps) {
    this.#deps = deps;
  }

  /**
   * Sets the display name and the avatar that the provider reports. A failure is logged, and the login
   * continues.
   */
  async update(userId: string, remote: RemoteUser): Promise<void> {
    const { profiles, log } = this.#deps;
    const { displayName } = remote;
    try {
      const profile = await profiles.read(userId);
      if (displayName && profile['displayname'] !== displayName) {
        await profiles.setForUser(userId, 'displayname', displayName);
      }
    } catch (err) {
      log.warn({ err, user: userId }, 'The display name from the identity provider could not be set');
    }
    await this.setPicture(userId, remote);
  }

  /**
   * Downloads the picture of a user, and sets it as the avatar unless the avatar has the same content. A failure is
   * logged, and the login continues.
   */
  async setPicture(userId: string, { picture }: RemoteUser): Promise<void> {
    const { guardedHttp, log, pictures, profiles, maxPicture } = this.#deps;
    if (!picture || pictures === undefined) return;
    try {
      const url = new URL(picture);
      if (url.protocol !== 'https:' && url.protocol !== 'http:')
        throw new Error('the picture has no HTTP URL');
      const maxBody = maxPicture ?? defaultMaxPicture;
      const { status, headers, body } = await guardedHttp.fetch(url, { timeout, maxBody, redirects: 3 });
      const contentType = String(headers['content-type'] ?? '')
        .split(';', 1)[0]!
        .trim()
        .toLowerCase();
      if (status !== 200) throw new Error(`the server of the picture responded ${status}`);
      if (!pictureTypes.test(contentType))
        throw new Error(`the picture has the unsupported content type ${contentType}`);
      const avatar = (await profiles.read(userId))['avatar_url'];
      const current = typeof avatar === 'string' ? await pictures.describe(avatar) : undefined;
      if (current?.sha256 === hash('sha256', body, 'hex')) return;
      const uri = await pictures.store(userId, { contentType, bytes: body });
      await profiles.setForUser(userId, 'avatar_url', uri);
    } catch (err) {
      log.warn({ err, user: userId }, 'The picture from the identity provider could not be set as avatar');
    }
  }
}
