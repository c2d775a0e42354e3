/** A site that describes its pages by oEmbed. Source: https://oembed.com/providers.json */
export interface OEmbedProvider {
  readonly provider_name: string;
  readonly endpoints: readonly {
    /** May contain `{format}`. */
    readonly url: string;
    /** URLs of pages; `*` stands for any characters. When absent, the pages link to their oEmbed responses. */
    readonly schemes?: readonly string[];
    readonly formats?: readonly string[];
  }[];
}
