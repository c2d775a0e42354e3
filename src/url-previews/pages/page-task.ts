/** Values of a preview by their names: `og:title` and so on. */
export type Properties = Readonly<Record<string, string>>;

/** Tasks of the process that reads pages. */
export interface PageTask {
  /** `oembed` is a response in JSON or XML. */
  readonly kind: 'html' | 'oembed';
  /** The bytes in base64: messages between processes are JSON. */
  readonly body: string;
  /** The header of the response. */
  readonly contentType: string;
  /** Where the body came from, after redirects. */
  readonly url: string;
}

/** What a page or an oEmbed response says about itself. */
export interface PageResult {
  readonly properties: Properties;
  /** URLs of images, best first; the first that is an image is shown. */
  readonly images: readonly string[];
  /** The URL of an oEmbed response about the page. */
  readonly oEmbedUrl?: string | undefined;
  /** Shown as the title when there is no other. */
  readonly author?: string | undefined;
}
