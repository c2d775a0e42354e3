import { type SectionType, section } from '../kernel/config/index.ts';
import { previewOptions } from './options/previews.ts';
import { repositoryOptions } from './options/repository.ts';

/** The media repository and URL previews. */
export const mediaSection = section({
  title: 'Media and URL previews',
  options: { ...repositoryOptions, ...previewOptions },
  rules: [
    ({ url_preview_enabled, url_preview_ip_range_blacklist }, view) => {
      if (url_preview_enabled && url_preview_ip_range_blacklist === null) {
        view.error(
          'url_preview_enabled',
          'needs url_preview_ip_range_blacklist, or users could make this server request addresses that only it can reach; the default of ip_range_blacklist is a good list',
        );
      }
    },
  ],
});

export type MediaConfig = SectionType<typeof mediaSection>;
