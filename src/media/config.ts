import { type SectionType, section } from '../kernel/config/index.ts';
import { repositoryOptions } from './options/repository.ts';

/** The options of the media repository. */
export const mediaSection = section({ title: 'Media', options: repositoryOptions });

export type MediaConfig = SectionType<typeof mediaSection>;
