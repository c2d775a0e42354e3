import { describe } from 'node:test';
import { type RuleCase, testRules } from './test/rule-case.ts';

const cases: RuleCase[] = [
  {
    rule: 'requires a list of forbidden addresses for URL previews',
    invalid: 'url_preview_enabled: true',
    kind: 'error',
    path: 'url_preview_enabled',
    message: /needs url_preview_ip_range_blacklist/,
    valid: 'url_preview_enabled: true\nurl_preview_ip_range_blacklist: []',
  },
  {
    rule: 'requires the URL of a LiveKit transport',
    invalid: 'proto_rtc: {transports: [{type: livekit}]}',
    kind: 'error',
    path: 'proto_rtc.transports[0].livekit_service_url',
    message: /must be given when the type is livekit/,
    valid: 'proto_rtc: {transports: [{type: livekit, livekit_service_url: "https://rtc.example.org"}]}',
  },
  {
    rule: 'warns about livekit_service_url of a transport whose type is not livekit',
    invalid: 'proto_rtc: {transports: [{type: other, livekit_service_url: "https://rtc.example.org"}]}',
    kind: 'warning',
    path: 'proto_rtc.transports[0].livekit_service_url',
    message: /has no effect unless the type is livekit/,
    valid: 'proto_rtc: {transports: [{type: other}]}',
  },
  {
    rule: 'warns about limits of avatars without a media repository',
    invalid: 'enable_media_repo: false\nmax_avatar_size: 10M',
    kind: 'warning',
    path: 'max_avatar_size',
    message: /prevents all changes of avatars/,
    valid: 'max_avatar_size: 10M',
  },
  {
    rule: 'warns about forbidden addresses of URL previews together with a proxy',
    invalid:
      'https_proxy: "http://proxy:3128"\nurl_preview_enabled: true\nurl_preview_ip_range_blacklist: [10.0.0.0/8]',
    kind: 'warning',
    path: 'url_preview_ip_range_blacklist',
    message: /has no effect on requests through a proxy/,
    valid: 'url_preview_enabled: true\nurl_preview_ip_range_blacklist: [10.0.0.0/8]',
  },
  {
    rule: 'warns about an entry of url_preview_url_blacklist without a pattern, for instance because the name of its only part is misspelt',
    invalid: 'url_preview_url_blacklist: [{netloc: x.org}, {netlok: x.org}]',
    kind: 'warning',
    path: 'url_preview_url_blacklist[1]',
    message: /has no pattern, so it refuses no URL/,
    valid: 'url_preview_url_blacklist: [{netloc: x.org}]',
  },
  {
    rule: 'refuses the maximum delay 0 for delayed events',
    invalid: 'max_event_delay_duration: 0',
    kind: 'error',
    path: 'max_event_delay_duration',
    message: /found 0; allowed: a duration above 0, or null/,
    valid: 'max_event_delay_duration: 24h',
  },
  {
    rule: 'refuses a retention policy with min_lifetime above max_lifetime',
    invalid: 'retention: {default_policy: {min_lifetime: 1y, max_lifetime: 1d}}',
    kind: 'error',
    path: 'retention.default_policy.min_lifetime',
    message: /must not be above max_lifetime/,
    valid: 'retention: {default_policy: {min_lifetime: 1d, max_lifetime: 1y}}',
  },
  {
    rule: 'refuses allowed_lifetime_min above allowed_lifetime_max',
    invalid: 'retention: {allowed_lifetime_min: 1y, allowed_lifetime_max: 1d}',
    kind: 'error',
    path: 'retention.allowed_lifetime_min',
    message: /must not be above allowed_lifetime_max/,
    valid: 'retention: {allowed_lifetime_min: 1d, allowed_lifetime_max: 1y}',
  },
  {
    rule: 'refuses a purge job with shortest_max_lifetime above longest_max_lifetime',
    invalid:
      'retention: {purge_jobs: [{interval: 1d}, {interval: 1d, shortest_max_lifetime: 3d, longest_max_lifetime: 1d}]}',
    kind: 'error',
    path: 'retention.purge_jobs[1].shortest_max_lifetime',
    message: /must not be above longest_max_lifetime/,
    valid:
      'retention: {purge_jobs: [{interval: 1d}, {interval: 1d, shortest_max_lifetime: 1d, longest_max_lifetime: 3d}]}',
  },
  {
    rule: 'refuses a purge job with the interval 0',
    invalid: 'retention: {purge_jobs: [{interval: 0}]}',
    kind: 'error',
    path: 'retention.purge_jobs[0].interval',
    message: /found 0; allowed: a duration above 0/,
    valid: 'retention: {purge_jobs: [{interval: 12h}]}',
  },
  {
    rule: 'warns about purge jobs that leave out some rooms',
    invalid: 'retention: {purge_jobs: [{interval: 1d, shortest_max_lifetime: 1d, longest_max_lifetime: 3d}]}',
    kind: 'warning',
    path: 'retention.purge_jobs',
    message: /add a job without a lower bound and one without an upper bound/,
    valid:
      'retention: {purge_jobs: [{interval: 1d, longest_max_lifetime: 3d}, {interval: 1d, shortest_max_lifetime: 3d}]}',
  },
  {
    rule: 'requires max_size in media_upload_limits',
    invalid: 'media_upload_limits: [{time_period: 1d}]',
    kind: 'error',
    path: 'media_upload_limits[0].max_size',
    message: /must be given; allowed: a size/,
    valid: 'media_upload_limits: [{time_period: 1d, max_size: 500M}]',
  },
];

describe('configuration rules of rooms and media', () => {
  testRules(cases);
});
