import type { Readable } from 'node:stream';
import type { Logger } from '../kernel/observability/index.ts';
import type { JsonObject } from '../protocol/index.ts';
import { MatrixError } from '../protocol/index.ts';
import { fetchError, type WebFetcher, type WebResponse } from './fetching/web-fetcher.ts';
import type { OEmbedProviders } from './oembed/providers.ts';
import type { PageReader } from './pages/page-reader.ts';
import type { PageResult } from './pages/page-task.ts';

/** This server's copy of an image. */
export interface PreviewImage {
  readonly mxcUri: string;
  readonly contentType: string;
  /** Bytes of the copy. */
  readonly size: number;
  readonly width: number;
  readonly height: number;
}

export interface PreviewMakerDeps {
  readonly web: WebFetcher;
  readonly reader: PageReader;
  readonly providers: OEmbedProviders;
  /**
   * Stores an image for some days, for the preview of a user; `undefined` when it is not an image or cannot be stored.
   */
  readonly storeImage: (
    userId: string,
    fileName: string | undefined,
    content: Readable,
  ) => Promise<PreviewImage | undefined>;
  readonly log: Logger;
}

/** Maximum number of bytes of a page that are parsed; the rest of a larger page is ignored. */
const maxParsed = 4 * 1024 * 1024;

/** Maximum bytes of an oEmbed response that are parsed. */
const maxOEmbed = 1024 * 1024;

const pageTypes = 'text/html, application/xhtml+xml, image/*;q=0.9, video/*;q=0.9, */*;q=0.5';
const oEmbedTypes = 'application/json, text/xml;q=0.9';

const emptyResult: PageResult = { properties: {}, images: [] };

/** Makes the preview of a URL: fetches the page, its oEmbed response and one image. */
export class PreviewMaker {
  readonly #deps: PreviewMakerDeps;

  constructor(deps: PreviewMakerDeps) {
    this.#deps = deps;
  }

  /**
   * Makes the preview of a URL.
   * @param userId the user who has requested the preview first
   * @throws MatrixError when the page cannot be fetched
   */
  async make(userId: string, url: URL): Promise<JsonObject> {
    const response = this.#deps.providers.responseFor(url);
    const oEmbed = response && (await this.#readOEmbed(response));
    if (oEmbed !== undefined && Object.keys(oEmbed.properties).length > 0)
      return this.#compose(userId, oEmbed);
    return this.#makeFromPage(userId, url);
  }

  async #makeFromPage(userId: string, url: URL): Promise<JsonObject> {
    const { web, reader } = this.#deps;
    const response = await web.open(url, pageTypes);
    const { contentType, body } = response;
    if (/^\s*image\//i.test(contentType)) return this.#previewOfImage(userId, response);
    if (!/^\s*(text\/html|application\/xhtml\+xml)\s*(;|$)/i.test(contentType)) {
      body.destroy();
      return /^\s*(video|audio)\//i.test(contentType) ? previewOfRecording(response) : {};
    }
    const bytes = await web.read(response, maxParsed);
    const page = await reader.read('html', { body: bytes, contentType, url: response.url });
    // Properties of the page take precedence: the oEmbed responses of some sites are incomplete without the scripts
    // that they embed.
    const linked = page.oEmbedUrl ? await this.#readOEmbed(new URL(page.oEmbedUrl)) : undefined;
    return this.#compose(userId, page, linked);
  }

  async #previewOfImage(userId: string, { fileName, body }: WebResponse): Promise<JsonObject> {
    const image = await this.#store(userId, fileName, body);
    return { ...(fileName !== undefined && { 'og:description': fileName }), ...propertiesOf(image) };
  }

  /** Fetches an oEmbed response. @returns `undefined` when it cannot be fetched or has another content type */
  async #readOEmbed(url: URL): Promise<PageResult | undefined> {
    const { web, reader } = this.#deps;
    try {
      const response = await web.open(url, oEmbedTypes);
      if (!/json|xml|javascript/i.test(response.contentType)) {
        response.body.destroy();
        return undefined;
      }
      const body = await web.read(response, maxOEmbed);
      return await reader.read('oembed', { body, contentType: response.contentType, url: response.url });
    } catch (error) {
      return this.#logOmission(error, url);
    }
  }

  /**
   * Returns the preview: the properties of the page, those of the linked oEmbed response that the page lacks, and the
   * first image that can be fetched.
   */
  async #compose(userId: string, page: PageResult, linked = emptyResult): Promise<JsonObject> {
    const properties = { ...linked.properties, ...page.properties };
    const author = linked.author ?? page.author;
    if (properties['og:title'] === undefined && author !== undefined) properties['og:title'] = author;
    for (const url of [...page.images, ...linked.images]) {
      const image = await this.#fetchImage(userId, new URL(url));
      if (image !== undefined) return { ...properties, ...propertiesOf(image) };
    }
    return properties;
  }

  async #fetchImage(userId: string, url: URL): Promise<PreviewImage | undefined> {
    try {
      const { body, contentType, fileName } = await this.#deps.web.open(url, 'image/*');
      if (/^\s*image\//i.test(contentType)) return await this.#store(userId, fileName, body);
      body.destroy();
      return undefined;
    } catch (error) {
      return this.#logOmission(error, url);
    }
  }

  async #store(
    userId: string,
    fileName: string | undefined,
    body: Readable,
  ): Promise<PreviewImage | undefined> {
    try {
      return await this.#deps.storeImage(userId, fileName, body);
    } catch (error) {
      throw fetchError(error);
    } finally {
      body.destroy();
    }
  }

  /**
   * Logs why an image or oEmbed response is left out of a preview.
   * @throws the error again when it is a rate limit, or not a MatrixError
   */
  #logOmission(error: unknown, url: URL): undefined {
    if (!(error instanceof MatrixError) || error.status === 429) throw error;
    this.#deps.log.debug(
      { host: url.host, why: error.message },
      'An image or oEmbed response of a URL preview could not be fetched',
    );
    return undefined;
  }
}

/**
 * Returns the fields of a preview that describe its image.
 * Source: client-server API, `GET /_matrix/client/v1/media/preview_url`.
 */
const propertiesOf = (image: PreviewImage | undefined): JsonObject =>
  image === undefined
    ? {}
    : {
        'og:image': image.mxcUri,
        'og:image:type': image.contentType,
        'og:image:width': image.width,
        'og:image:height': image.height,
        'matrix:image:size': image.size,
      };

/** Returns the preview of a video or audio file, which is not downloaded. */
function previewOfRecording({ url, contentType, fileName }: WebResponse): JsonObject {
  const essence = contentType.split(';', 1)[0]!.trim().toLowerCase();
  const kind = essence.startsWith('video/') ? 'video' : 'audio';
  return {
    ...(fileName !== undefined && { 'og:title': fileName }),
    'og:type': kind === 'video' ? 'video.other' : 'music.song',
    [`og:${kind}`]: url.href,
    [`og:${kind}:type`]: essence,
  };
}
