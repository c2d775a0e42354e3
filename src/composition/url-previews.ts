import { OutboundHttp, systemResolver, TlsSettings } from '../kernel/outbound/index.ts';
import type { MediaSlice } from '../media/index.ts';
import { openUrlPreviews } from '../url-previews/index.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';

/** Opens URL previews, if they and the media repository are enabled. */
export function startUrlPreviews(kernel: Kernel, media: MediaSlice | undefined, opened: OpenedSlices): void {
  const { configuration, authorities, resolver = systemResolver, clock, caches } = kernel;
  const options = configuration.urlPreviews;
  if (media === undefined || !options.url_preview_enabled) return;
  const http = new OutboundHttp({
    config: {
      ...configuration.outbound,
      ip_range_blacklist: options.url_preview_ip_range_blacklist ?? [],
      ip_range_whitelist: options.url_preview_ip_range_whitelist,
    },
    name: 'url_preview_connection_pools',
    maxPools: 100,
    tls: authorities && new TlsSettings({ verify: true, authorities }),
    clock,
    caches,
    resolver,
  });
  opened.add('requests for URL previews', { stop: () => http.close() });
  opened.add(
    'URL previews',
    openUrlPreviews({
      ...kernel,
      log: kernel.namedLog('url-previews'),
      http,
      storeImage: (userId, fileName, content) => media.previewImages.store(userId, fileName, content),
      options,
    }),
  );
}
