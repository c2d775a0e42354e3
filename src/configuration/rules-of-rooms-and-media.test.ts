import { describe } from 'node:test';
import { type RuleCase, testRules } from './test/rule-case.ts';

const cases: RuleCase[] = [
  {
    rule: 'previews need a list of forbidden addresses',
    breaks: 'url_preview_enabled: true',
    kind: 'error',
    path: 'url_preview_enabled',
    says: /needs url_preview_ip_range_blacklist/,
    keeps: 'url_preview_enabled: true\nurl_preview_ip_range_blacklist: []',
  },
  {
    rule: 'a LiveKit transport needs its URL',
    breaks: 'proto_rtc: {transports: [{type: livekit}]}',
    kind: 'error',
    path: 'proto_rtc.transports[0].livekit_service_url',
    says: /must be given when the type is livekit/,
    keeps: 'proto_rtc: {transports: [{type: livekit, livekit_service_url: "https://rtc.example.org"}]}',
  },
  {
    rule: 'only a LiveKit transport has that URL',
    breaks: 'proto_rtc: {transports: [{type: other, livekit_service_url: "https://rtc.example.org"}]}',
    kind: 'warning',
    path: 'proto_rtc.transports[0].livekit_service_url',
    says: /has no effect unless the type is livekit/,
    keeps: 'proto_rtc: {transports: [{type: other}]}',
  },
  {
    rule: 'limits for avatars need a media repository',
    breaks: 'enable_media_repo: false\nmax_avatar_size: 10M',
    kind: 'warning',
    path: 'max_avatar_size',
    says: /lets nobody change their avatar/,
    keeps: 'max_avatar_size: 10M',
  },
  {
    rule: 'forbidden addresses of previews mean nothing behind a proxy',
    breaks:
      'https_proxy: "http://proxy:3128"\nurl_preview_enabled: true\nurl_preview_ip_range_blacklist: [10.0.0.0/8]',
    kind: 'warning',
    path: 'url_preview_ip_range_blacklist',
    says: /has no effect on requests that go through a proxy/,
    keeps: 'url_preview_enabled: true\nurl_preview_ip_range_blacklist: [10.0.0.0/8]',
  },
  {
    rule: 'delays of events are positive',
    breaks: 'max_event_delay_duration: 0',
    kind: 'error',
    path: 'max_event_delay_duration',
    says: /found 0; allowed: a duration above 0, or null/,
    keeps: 'max_event_delay_duration: 24h',
  },
  {
    rule: 'a policy keeps messages no shorter than it may delete them',
    breaks: 'retention: {default_policy: {min_lifetime: 1y, max_lifetime: 1d}}',
    kind: 'error',
    path: 'retention.default_policy.min_lifetime',
    says: /must not be above max_lifetime/,
    keeps: 'retention: {default_policy: {min_lifetime: 1d, max_lifetime: 1y}}',
  },
  {
    rule: 'the shortest allowed lifetime is not above the longest',
    breaks: 'retention: {allowed_lifetime_min: 1y, allowed_lifetime_max: 1d}',
    kind: 'error',
    path: 'retention.allowed_lifetime_min',
    says: /must not be above allowed_lifetime_max/,
    keeps: 'retention: {allowed_lifetime_min: 1d, allowed_lifetime_max: 1y}',
  },
  {
    rule: 'the bounds of a purge job are in order',
    breaks:
      'retention: {purge_jobs: [{interval: 1d}, {interval: 1d, shortest_max_lifetime: 3d, longest_max_lifetime: 1d}]}',
    kind: 'error',
    path: 'retention.purge_jobs[1].shortest_max_lifetime',
    says: /must not be above longest_max_lifetime/,
    keeps:
      'retention: {purge_jobs: [{interval: 1d}, {interval: 1d, shortest_max_lifetime: 1d, longest_max_lifetime: 3d}]}',
  },
  {
    rule: 'a purge job takes time between its runs',
    breaks: 'retention: {purge_jobs: [{interval: 0}]}',
    kind: 'error',
    path: 'retention.purge_jobs[0].interval',
    says: /found 0; allowed: a duration above 0/,
    keeps: 'retention: {purge_jobs: [{interval: 12h}]}',
  },
  {
    rule: 'the purge jobs cover all rooms',
    breaks: 'retention: {purge_jobs: [{interval: 1d, shortest_max_lifetime: 1d, longest_max_lifetime: 3d}]}',
    kind: 'warning',
    path: 'retention.purge_jobs',
    says: /add a job without a lower bound and one without an upper bound/,
    keeps:
      'retention: {purge_jobs: [{interval: 1d, longest_max_lifetime: 3d}, {interval: 1d, shortest_max_lifetime: 3d}]}',
  },
  {
    rule: 'an upload limit has a span and a size',
    breaks: 'media_upload_limits: [{time_period: 1d}]',
    kind: 'error',
    path: 'media_upload_limits[0].max_size',
    says: /must be given; allowed: a size/,
    keeps: 'media_upload_limits: [{time_period: 1d, max_size: 500M}]',
  },
];

describe('rules of rooms and media', () => {
  testRules(cases);
});
