import { readFileSync } from 'node:fs';
import { RE2JS } from 're2js';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { StartFailure } from '../../kernel/start-failure.ts';
import { builtInProviders } from './built-in-providers.ts';
import type { OEmbedProvider } from './provider.ts';

export interface OEmbedOptions {
  readonly disable_default_providers: boolean;
  readonly additional_providers: readonly string[];
}

const listSchema = Type.Array(
  Type.Object({
    provider_name: Type.String(),
    endpoints: Type.Array(
      Type.Object({
        url: Type.String(),
        schemes: Type.Optional(Type.Array(Type.String())),
        formats: Type.Optional(Type.Array(Type.String())),
      }),
    ),
  }),
);

/** Finds the oEmbed endpoints of pages. */
export class OEmbedProviders {
  readonly #endpoints: readonly {
    readonly url: string;
    readonly format: string;
    readonly pages: readonly RE2JS[];
  }[];

  constructor(providers: readonly OEmbedProvider[]) {
    this.#endpoints = providers.flatMap(({ endpoints }) =>
      endpoints.flatMap(({ url, schemes = [], formats }) => {
        const format = formats === undefined || formats.includes('json') ? 'json' : 'xml';
        return schemes.length === 0 ? [] : [{ url, format, pages: schemes.map(pagePattern) }];
      }),
    );
  }

  /**
   * Reads the lists of providers that the options name.
   * @throws StartFailure, with the name of the file, when a file is not a list of providers
   */
  static open({ disable_default_providers, additional_providers }: OEmbedOptions): OEmbedProviders {
    const additional = additional_providers.flatMap(readList);
    return new OEmbedProviders([...additional, ...(disable_default_providers ? [] : builtInProviders)]);
  }

  /** Returns the URL of the oEmbed response about a page; `undefined` when no list has an endpoint for it. */
  responseFor(page: URL): URL | undefined {
    const endpoint = this.#endpoints.find(({ pages }) => pages.some((pattern) => pattern.matches(page.href)));
    const url = endpoint && URL.parse(endpoint.url.replaceAll('{format}', endpoint.format));
    if (!url) return undefined;
    url.searchParams.set('url', page.href);
    url.searchParams.set('format', endpoint.format);
    return url;
  }
}

function readList(path: string): readonly OEmbedProvider[] {
  let list: unknown;
  try {
    list = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const reason = (error as Error).message;
    throw new StartFailure(`oembed.additional_providers: cannot read ${path}: ${reason}`, { cause: error });
  }
  if (!Value.Check(listSchema, list))
    throw new StartFailure(`oembed.additional_providers: ${path} is not a list of oEmbed providers`);
  return list;
}

/**
 * Compiles a scheme to a pattern that matches `http` and `https` alike. In the host, `*` stands for one or more labels.
 */
function pagePattern(scheme: string): RE2JS {
  const [, , host = '', rest = ''] = /^(https?):\/\/([^/]*)(.*)$/.exec(scheme) ?? [];
  const hostPattern = host.split('*').map(RE2JS.quote).join('[A-Za-z0-9_.-]+');
  return RE2JS.compile(`https?://${hostPattern}${rest.split('*').map(RE2JS.quote).join('.*')}`);
}
