import { boolean, option, section } from '../kernel/config/index.ts';

/** Message search. */
export const searchSection = section({
  title: 'Search',
  options: {
    enable_search: option(boolean(), {
      description:
        'Indexes messages and lets users search them. When off, new messages are not indexed and searches fail with an error.',
      default: true,
    }),
  },
});
