import type { Readable } from 'node:stream';
import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Route } from '../kernel/http/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { OutboundHttp } from '../kernel/outbound/index.ts';
import type { RateLimit, RateLimiter } from '../kernel/rate-limits/index.ts';
import { BlockedUrls } from './blocked-urls.ts';
import type { UrlPreviewsConfig } from './config.ts';
import { WebFetcher } from './fetching/web-fetcher.ts';
import { OEmbedProviders } from './oembed/providers.ts';
import { PageReader } from './pages/page-reader.ts';
import { type PreviewImage, PreviewMaker } from './preview-maker.ts';
import { urlPreviewRoutes } from './routes.ts';
import { UrlPreviews } from './url-previews.ts';

export interface UrlPreviewDeps {
  readonly caches: CacheRegistry;
  readonly clock: Clock;
  readonly database: Database;
  readonly jobs: Jobs;
  readonly log: Logger;
  /** Refuses the addresses of `url_preview_ip_range_blacklist`. */
  readonly http: OutboundHttp;
  /** Stores an image as media, for the preview of a user; `undefined` when it is not an image or cannot be stored. */
  readonly storeImage: (
    userId: string,
    fileName: string | undefined,
    content: Readable,
  ) => Promise<PreviewImage | undefined>;
  readonly userLimiter: (limit: RateLimit) => RateLimiter;
  readonly options: UrlPreviewsConfig;
}

/** URL previews as the server uses them. */
export interface UrlPreviewsSlice {
  readonly routes: readonly Route[];
  /** Aborts the previews that are being made. */
  stop(): void;
}

const hour = 3_600_000;

/**
 * Limit of the previews that are made for one user; stored previews do not count. The burst is large, because a client
 * may show many links at once.
 */
const previewLimit = { per_second: 1, burst_count: 100 };

/** Opens URL previews. @throws StartFailure for a file of `oembed.additional_providers` that cannot be used */
export function openUrlPreviews(deps: UrlPreviewDeps): UrlPreviewsSlice {
  const { jobs, options } = deps;
  const blocked = new BlockedUrls(options.url_preview_url_blacklist);
  const web = new WebFetcher({ ...deps, blocked });
  const reader = new PageReader(deps);
  const maker = new PreviewMaker({ ...deps, web, reader, providers: OEmbedProviders.open(options.oembed) });
  const previews = new UrlPreviews({ ...deps, maker, limit: deps.userLimiter(previewLimit) });
  jobs.every('url-previews/delete-old', hour, { run: () => previews.deleteOld() });
  return {
    routes: urlPreviewRoutes(previews),
    stop() {
      web.stop();
      reader.stop();
    },
  };
}
