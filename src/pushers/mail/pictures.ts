import type { MailImage } from '../../mail/index.ts';

/** Reads small versions of pictures of this server; declared here, supplied at composition. */
export interface Avatars {
  /** Returns a small version of a picture; `undefined` for pictures that are not stored here or cannot be read. @param size width and height in pixels */
  thumbnail(mxcUri: string, size: number): Promise<{ contentType: string; bytes: Buffer } | undefined>;
}

/** The picture of a room or a user in a mail. */
export interface Picture extends Readonly<Record<string, string | null>> {
  /** Content-ID of the image in the mail; null when there is none. */
  readonly image: string | null;
  /** The letter that is shown instead of a missing image. */
  readonly initial: string;
  /** The background color of this letter; it depends on the id of the room or user. */
  readonly color: string;
}

/** Maximum number of images in a mail. */
const maxImages = 20;

/** Width and height of an image in pixels. */
const size = 96;

/** Maximum bytes of an image. */
const maxBytes = 32_768;

/** Background colors of the letters, dark enough for white text. */
const colors = ['#b45309', '#0f766e', '#4338ca', '#be123c', '#15803d', '#7e22ce'] as const;

/**
 * Collects the pictures of one mail. They are parts of the mail, because mail programs have no access token to load
 * them.
 */
export class Pictures {
  readonly images: MailImage[] = [];
  readonly #avatars: Avatars | undefined;
  /** Avatar URL to the Content-ID of its image; null for pictures that the mail does not contain. */
  readonly #imageIds = new Map<string, string | null>();

  constructor(avatars: Avatars | undefined) {
    this.#avatars = avatars;
  }

  /** Returns the picture of a room or a user. @param id id of the room or the user */
  async of(id: string, name: string, avatarUrl: string | undefined): Promise<Picture> {
    const letters = name.replace(/^[@#!+]/u, '');
    const initial = (Array.from(letters)[0] ?? '?').toUpperCase();
    let sum = 0;
    for (const letter of id) sum += letter.codePointAt(0) ?? 0;
    const image = avatarUrl === undefined ? null : await this.#image(avatarUrl);
    return { image, initial, color: colors[sum % colors.length]! };
  }

  async #image(avatarUrl: string): Promise<string | null> {
    const knownId = this.#imageIds.get(avatarUrl);
    if (knownId !== undefined || this.images.length >= maxImages) return knownId ?? null;
    const thumbnail = await this.#avatars?.thumbnail(avatarUrl, size);
    const isSmallEnough = thumbnail !== undefined && thumbnail.bytes.length <= maxBytes;
    const cid = isSmallEnough ? `picture${this.images.length}` : null;
    this.#imageIds.set(avatarUrl, cid);
    if (isSmallEnough && cid !== null) {
      const { contentType, bytes } = thumbnail;
      this.images.push({ cid, contentType, base64: bytes.toString('base64') });
    }
    return cid;
  }
}
