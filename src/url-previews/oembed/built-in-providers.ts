import type { OEmbedProvider } from './provider.ts';

/**
 * Sites that need oEmbed: their oEmbed responses have more metadata than their pages, or their pages reject requests of
 * servers. Taken from the list at https://oembed.com/providers.json on 2026-11-20. The oEmbed responses of all other
 * sites are found by the links in their pages.
 */
export const builtInProviders: readonly OEmbedProvider[] = [
  {
    provider_name: 'Bluesky Social',
    endpoints: [{ url: 'https://embed.bsky.app/oembed', schemes: ['https://bsky.app/profile/*/post/*'] }],
  },
  {
    provider_name: 'Flickr',
    endpoints: [
      {
        url: 'https://www.flickr.com/services/oembed/',
        schemes: ['https://*.flickr.com/photos/*', 'https://flic.kr/p/*', 'https://flic.kr/s/*'],
      },
    ],
  },
  {
    provider_name: 'Reddit',
    endpoints: [
      {
        url: 'https://www.reddit.com/oembed',
        schemes: ['https://reddit.com/r/*/comments/*/*', 'https://www.reddit.com/r/*/comments/*/*'],
      },
    ],
  },
  {
    provider_name: 'SoundCloud',
    endpoints: [{ url: 'https://soundcloud.com/oembed', schemes: ['https://soundcloud.com/*'] }],
  },
  {
    provider_name: 'Spotify',
    endpoints: [{ url: 'https://open.spotify.com/oembed', schemes: ['https://open.spotify.com/*'] }],
  },
  {
    provider_name: 'TikTok',
    endpoints: [{ url: 'https://www.tiktok.com/oembed', schemes: ['https://www.tiktok.com/*'] }],
  },
  {
    provider_name: 'Twitter',
    endpoints: [
      {
        url: 'https://publish.twitter.com/oembed',
        schemes: [
          'https://twitter.com/*/status/*',
          'https://*.twitter.com/*/status/*',
          'https://x.com/*/status/*',
        ],
      },
    ],
  },
  {
    provider_name: 'Vimeo',
    endpoints: [{ url: 'https://vimeo.com/api/oembed.{format}', schemes: ['https://vimeo.com/*'] }],
  },
  {
    provider_name: 'YouTube',
    endpoints: [
      {
        url: 'https://www.youtube.com/oembed',
        schemes: [
          'https://*.youtube.com/watch*',
          'https://*.youtube.com/v/*',
          'https://*.youtube.com/shorts/*',
          'https://youtu.be/*',
        ],
      },
    ],
  },
];
