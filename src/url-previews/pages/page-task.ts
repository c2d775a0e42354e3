/** Values of a preview by name, for instance `og:title`. */
export type Properties = Readonly<Record<string, string>>;

/** A task of the process that reads pages. */
export interface PageTask {
  /** `oembed` is a response in JSON or XML. */
  readonly kind: 'html' | 'oembed';
  /** The bytes in base64: messages between processes are JSON. */
  readonly body: string;
  /** The `Content-Type` header of the response. */
  readonly contentType: string;
  /** The URL of the body, after redirects. */
  readonly url: string;
}

/** The metadata in a page or an oEmbed response. */
export interface PageResult {
  readonly properties: Properties;
  /** URLs of images, the best first; the preview shows the first image that can be fetched. */
  readonly images: readonly string[];
  /** The URL of an oEmbed response about the page. */
  readonly oEmbedUrl?: string | undefined;
  /** The author of the page, used as the title when there is no other title. */
  readonly author?: string | undefined;
}
