import { freeObject, list, object, option, section, string } from '../kernel/config/index.ts';

/** Code of others that extends the server. */
export const modulesSection = section({
  title: 'Modules',
  options: {
    modules: option(
      list(
        object({
          module: option(string({ minLength: 1 }), {
            description: 'The module and the class in it.',
            required: true,
          }),
          config: option(freeObject(), {
            description: 'What the module is given to configure itself.',
            default: {},
            secret: true,
          }),
        }),
      ),
      { description: 'Modules to load.', default: [] },
    ),
  },
});
